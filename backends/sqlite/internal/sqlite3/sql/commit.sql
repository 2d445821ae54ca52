-- With synchronous=full it is on the disk when this returns.
commit
