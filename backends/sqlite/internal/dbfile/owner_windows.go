package dbfile

// GiveToOwnerOf does nothing: the directory decides who may open a file here.
func GiveToOwnerOf(string, string) {}
