-- The size of the file in bytes, free pages included, and that of the free pages. Always one row.
select page_count * page_size, freelist_count * page_size from pragma_page_count(), pragma_page_size(), pragma_freelist_count()
