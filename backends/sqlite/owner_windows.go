package sqlite

// giveTo has nothing to do: who may open a file here is said by its directory.
func giveTo(string, string) {}
