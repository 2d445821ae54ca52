package engine

// ValidateImport returns an error that names the field if a run of a capsule could not have been
// made by Kagzi.
func (r *Run) ValidateImport() error {
	if r.Status < RunPending || r.Status > RunSleeping && r.Status.String() == "UNKNOWN" {
		return Invalid("status", "has the unknown value %d", r.Status)
	}
	if r.CreatedAt.IsZero() {
		return Invalid("created_at", "must be set")
	}
	start := StartRun{Run: *r}
	return firstError([]error{
		start.Validate(),
		CheckPayload("output", r.Output),
		CheckText("note", r.Note, MaxNote),
		CheckText("waiting_for", r.WaitingFor, 2*MaxName),
		checkOptionalWorkerID(r.WorkerID),
		CheckCount("attempts", r.Attempts, 1),
		CheckCount("lease_losses", r.LeaseLosses, 0),
		CheckCount("unread_signals", r.UnreadSignals, 0),
		CheckUnreached(r.Unreached),
	})
}

// ValidateImport returns an error that names the field if an attempt of a capsule could not have
// been made by Kagzi.
func (s *Step) ValidateImport() error {
	switch {
	case s.Kind.String() == "UNKNOWN":
		return Invalid("kind", "has the unknown value %d", s.Kind)
	case s.Status.String() == "UNKNOWN":
		return Invalid("status", "has the unknown value %d", s.Status)
	case s.CreatedAt.IsZero():
		return Invalid("created_at", "must be set")
	case s.Kind == StepSignal && s.SignalName == "":
		return Invalid("signal_name", "must be set, because the step waits for a signal")
	}
	return firstError([]error{
		CheckName("name", s.Name),
		CheckPayload("input", s.Input),
		CheckPayload("output", s.reported()),
		CheckOptionalName("signal_name", s.SignalName),
		CheckOptionalName("child_type", s.ChildType),
		CheckText("overridden_by", s.OverriddenBy, MaxName),
		CheckText("override_reason", s.OverrideReason, MaxReason),
		checkOptionalWorkerID(s.WorkerID),
		CheckCount("attempt_number", s.Attempt, 1),
		CheckBranch("branch", s.Branch),
		checkPlace("settled", s.Settled, Unsettled),
		checkPlace("begun_in", s.BegunIn, -1),
	})
}

// reported returns the output as the code reported it, without what ChildOutput added: that does
// not count against the limits of a payload.
func (s *Step) reported() Payload {
	if s.Kind == StepChild {
		return ChildOutput(s.Output, s.ChildRunID, s.ChildRunID)
	}
	return s.Output
}

// ValidateImport returns an error that names the field if a signal of a capsule could not have been
// received by Kagzi.
func (s *Signal) ValidateImport() error {
	if s.ReceivedAt.IsZero() {
		return Invalid("received_at", "must be set")
	}
	p := SignalRunParams{Name: s.Name, SignalID: s.SignalID, Payload: s.Payload}
	return firstError([]error{p.Validate(), CheckOptionalName("step_name", s.StepName)})
}

// Validate returns an error if a run with its steps and signals exceeds the limits of one run. It
// sets Run.Steps and Run.Bytes.
func (r *ImportedRun) Validate() error {
	names := map[string]bool{}
	bytes := r.Run.Input.Size() + r.Run.Output.Size() + sizeOf(r.Run.Error)
	for i := range r.Steps {
		s := &r.Steps[i]
		names[s.Name] = true
		bytes += s.Input.Size() + s.Output.Size() + sizeOf(s.Error)
	}
	waiting, ids := 0, map[string]bool{}
	for _, s := range r.Signals {
		if s.SignalID != "" && ids[s.SignalID] {
			return Invalid("signal_id", "names two signals of one run")
		}
		ids[s.SignalID] = true
		if s.StepName == "" { // a consumed signal counts as its step's output
			waiting++
			bytes += s.Payload.Size()
		}
	}
	switch {
	case len(names) > MaxSteps:
		return TooLarge("steps", "has %d, at most %d are allowed", len(names), MaxSteps)
	case waiting > MaxSignals:
		return TooLarge("signals", "has %d that no step has consumed, at most %d are allowed", waiting, MaxSignals)
	case bytes > MaxRunBytes:
		return TooLarge("run", "has %d bytes, at most %d are allowed", bytes, MaxRunBytes)
	}
	r.Run.Steps, r.Run.Bytes = int64(len(names)), int64(bytes)
	return nil
}

func sizeOf(f *Failure) int {
	if f == nil {
		return 0
	}
	return f.Size()
}

func checkOptionalWorkerID(id string) error {
	if id == "" {
		return nil
	}
	return CheckWorkerID("worker_id", id)
}

// maxPlace limits counters of a run in a capsule, so that they can go on growing.
const maxPlace = 1 << 50

func checkPlace(field string, n, least int64) error {
	if n < least || n > maxPlace {
		return Invalid(field, "must be between %d and %d, got %d", least, int64(maxPlace), n)
	}
	return nil
}

// CheckCount returns an error that names the field if n is not a count from least up.
func CheckCount(field string, n, least int) error {
	if n < least || n > 1<<31-1 {
		return Invalid(field, "must be at least %d, got %d", least, n)
	}
	return nil
}
