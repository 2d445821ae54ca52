package platform

// IgnoreBrokenPipes does nothing: Windows sends no signal for a broken pipe.
func IgnoreBrokenPipes() {}
