package dbfile

// GiveToOwnerOf has nothing to do: who may open a file here is said by its directory.
func GiveToOwnerOf(string, string) {}
