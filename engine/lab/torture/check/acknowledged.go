package check

// Acknowledged checks I1, I2 and I4 only: whether everything that was acknowledged exists.
func Acknowledged(c *Case) []Line {
	i := index(c)
	return []Line{i.startsExist(), i.resultsAreRecorded(), i.endsAreFinal()}
}
