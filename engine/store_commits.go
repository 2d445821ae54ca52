package engine

// Commits is filled besides Store by stores that gather writes which wait into one commit.
type Commits interface {
	// CommitSizes tells how many writes shared a commit, since the store was opened. It waits for nothing.
	CommitSizes() CommitSizes
}

// CommitSizes is how many writes were in each commit.
type CommitSizes struct {
	Commits uint64
	Writes  uint64
	AtMost  map[float64]uint64 // how many commits held at most so many writes
}
