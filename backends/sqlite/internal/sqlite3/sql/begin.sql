-- Takes the write lock at once, so that the writer's reads are current.
begin immediate
