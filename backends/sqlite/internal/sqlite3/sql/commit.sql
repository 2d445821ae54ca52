-- With synchronous=full, the commit is on disk when this returns.
commit
