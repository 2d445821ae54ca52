package engine

// Validate refuses a schedule that breaks a limit, naming the request's field. Its expression and time zone are for package cron to
// judge. It needs CreatedAt.
func (s *Schedule) Validate() error {
	checks := []error{
		CheckNamespace("namespace", s.Namespace),
		checkScheduleName(s.Name),
		CheckRequestID(s.RequestID),
	}
	if err := firstError(checks); err != nil {
		return err
	}
	switch {
	case s.MaxCatchup < 0 || s.MaxCatchup > MaxCatchup:
		return Invalid("max_catchup", "must be between 0 (none) and %d, got %d", MaxCatchup, s.MaxCatchup)
	case s.Overlap > OverlapBufferOne:
		return Invalid("overlap_policy", "has the unknown value %d", s.Overlap)
	}
	// What it would start now stands for all that it starts.
	start := s.Start(s.ID, s.CreatedAt, s.CreatedAt)
	return start.Validate()
}

// checkScheduleName also refuses a name that reads as an id, since schedules are asked for by either.
func checkScheduleName(name string) error {
	if _, err := ParseID(name); err == nil {
		return Invalid("name", "must not look like an id")
	}
	return CheckOptionalName("name", name)
}
