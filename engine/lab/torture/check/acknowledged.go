package check

// Acknowledged is I1, I2 and I4 alone: whether everything that was acknowledged is there.
func Acknowledged(c *Case) []Line {
	i := index(c)
	return []Line{i.startsExist(), i.resultsAreRecorded(), i.endsAreFinal()}
}
