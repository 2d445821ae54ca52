package engine

import (
	"reflect"
	"testing"
	"time"
)

// fate says what happens to a field of a run in a run that is made from it.
type fate string

const (
	kept  fate = "kept"    // as in the run before
	unset fate = "unset"   // its zero value; it is set later in a run's life
	own   fate = "its own" // set for this run
	free  fate = "free"    // kept or set, by what the maker asks for
)

// fates has a decision for each field of a run and each way to make one run from another: a retry,
// a continuation, a child, a failure handler, an import of an open run, an import of an ended one.
// A child is made from what its parent's code asks for, so "kept" means as asked for.
var fates = map[string][6]fate{
	"ID":                {own, own, kept, own, kept, kept},
	"Namespace":         {kept, kept, own, kept, own, own},
	"ExternalID":        {kept, kept, kept, own, kept, kept},
	"RequestID":         {own, unset, unset, unset, kept, kept},
	"Queue":             {kept, kept, kept, own, kept, kept},
	"Type":              {kept, kept, kept, own, kept, kept},
	"Version":           {kept, kept, kept, unset, kept, kept},
	"Status":            {own, own, own, own, own, kept},
	"Priority":          {kept, kept, kept, unset, kept, kept},
	"Attempts":          {own, own, own, own, kept, kept},
	"Failures":          {unset, unset, unset, unset, kept, kept},
	"LeaseLosses":       {unset, unset, unset, unset, kept, kept},
	"Steps":             {unset, unset, unset, unset, kept, kept},
	"Bytes":             {own, own, own, own, kept, kept},
	"Input":             {kept, own, kept, own, kept, kept},
	"Output":            {unset, unset, unset, unset, unset, kept},
	"Error":             {unset, unset, unset, unset, kept, kept},
	"CreatedAt":         {own, own, own, own, kept, kept},
	"AvailableAt":       {own, own, own, own, unset, kept},
	"StartedAt":         {unset, unset, unset, unset, kept, kept},
	"FinishedAt":        {unset, unset, unset, unset, unset, kept},
	"DeadlineAt":        {free, free, kept, unset, kept, kept},
	"ScheduledAt":       {kept, kept, unset, unset, kept, kept},
	"WorkerID":          {unset, unset, unset, unset, unset, kept},
	"WaitingFor":        {unset, unset, unset, unset, unset, kept},
	"Note":              {unset, unset, unset, unset, kept, kept},
	"NamedDeadlineAt":   {free, free, kept, unset, kept, kept},
	"Pausing":           {unset, unset, unset, unset, unset, kept},
	"Paused":            {unset, unset, unset, unset, own, kept},
	"PausedAt":          {unset, unset, unset, unset, own, kept},
	"Gated":             {unset, unset, unset, unset, unset, kept},
	"HeldAt":            {unset, unset, unset, unset, own, kept},
	"Pinned":            {unset, unset, unset, unset, kept, kept},
	"CancelRequestedAt": {unset, unset, unset, unset, unset, kept},
	"CancelReason":      {unset, unset, unset, unset, unset, kept},
	"GraceUntil":        {unset, unset, unset, unset, unset, kept},
	"RetryPolicy":       {kept, kept, kept, unset, kept, kept},
	"RunRetryPolicy":    {kept, kept, kept, unset, kept, kept},
	"Timeouts":          {kept, kept, kept, unset, kept, kept},
	"Tags":              {kept, kept, kept, unset, kept, kept},
	"Requirements":      {kept, kept, kept, unset, kept, kept},
	"OnFailureWorkflow": {kept, kept, kept, unset, kept, kept},
	"OnFailureQueue":    {kept, kept, kept, unset, kept, kept},
	"ConcurrencyKey":    {kept, kept, kept, unset, kept, kept},
	"ConcurrencyLimit":  {kept, kept, kept, unset, kept, kept},
	"ConcurrencyScope":  {kept, kept, kept, unset, kept, kept},
	"HasPlace":          {unset, kept, unset, unset, unset, unset}, // a continuation under the same key keeps it
	"ParentRunID":       {kept, kept, own, unset, kept, kept},
	"ParentStepID":      {unset, kept, own, unset, kept, kept},
	"ParentClose":       {unset, kept, kept, unset, kept, kept},
	"Traceparent":       {kept, kept, kept, kept, kept, kept},
	"Origin":            {kept, kept, unset, own, own, own},
	"ScheduleID":        {kept, kept, unset, unset, unset, kept},
	"FailedRunID":       {kept, kept, unset, own, kept, kept},
	"RetriedFrom":       {own, unset, unset, unset, kept, kept},
	"ContinuedFrom":     {unset, own, unset, unset, kept, kept},
	"ContinuedAs":       {unset, unset, unset, unset, unset, kept},
	"FirstRunID":        {unset, kept, unset, unset, kept, kept},
	"BelowHandler":      {kept, kept, own, unset, kept, kept},
	"Suspect":           {unset, unset, unset, unset, unset, unset},
	"Divergences":       {unset, unset, unset, unset, unset, unset},
	"Unreached":         {unset, unset, unset, unset, unset, kept},
	"OwedFrom":          {unset, unset, unset, unset, unset, unset}, // what follows from its steps is set with these
	"UnreadSignals":     {unset, unset, unset, unset, unset, kept},
}

// TestLineage fails for a field of Run without a decision in fates, and for each that differs from
// it.
func TestLineage(t *testing.T) {
	now := noon.Truncate(time.Second).Add(time.Hour)
	open, ended := filledRun(1), filledRun(1)
	open.Status, ended.Status, open.Paused = RunSleeping, RunFailed, false
	open.Origin, ended.Origin = OriginSchedule, OriginSchedule
	for _, r := range []*Run{&open, &ended} { // far enough away to hold for what follows
		r.DeadlineAt, r.NamedDeadlineAt = now.Add(time.Hour), now.Add(2*time.Hour)
	}
	asked := filledRun(100)
	asked.Status = RunSleeping
	asked.AvailableAt, asked.BelowHandler = time.Time{}, false
	ways := []struct {
		name         string
		before, made Run
	}{
		{"retry", open, func() Run {
			again := RetryOf(&open, &RetryRunParams{ID: ID{9}, RequestID: "again",
				SteerParams: SteerParams{Now: now}})
			return again.NewRun()
		}()},
		{"continuation", open, func() Run {
			next := StartRun{Run: Run{ID: ID{9}, Input: Payload{Data: []byte("next")}, CreatedAt: now,
				AvailableAt: now}}
			next = Continuation(&open, next, now)
			return next.NewRun()
		}()},
		{"child", asked, func() Run {
			child := ChildOf(&open, ID{8}, StartRun{Run: asked}, now)
			return child.NewRun()
		}()},
		{"handler", open, func() Run {
			handler := HandlerOf(&open, "mourn", "graves", false, now)
			return handler.NewRun()
		}()},
		{"import of an open run", open, Imported(open, "elsewhere", now)},
		{"import of an ended run", ended, Imported(ended, "elsewhere", now)},
	}
	for i, w := range ways {
		before, made := reflect.ValueOf(w.before), reflect.ValueOf(w.made)
		for f := range before.NumField() {
			name := before.Type().Field(f).Name
			decided, known := fates[name]
			if !known {
				t.Errorf("field %s of Run has no decision for a %s", name, w.name)
				continue
			}
			same := reflect.DeepEqual(made.Field(f).Interface(), before.Field(f).Interface())
			zero := made.Field(f).IsZero()
			is := map[fate]bool{kept: same && !zero, unset: zero, own: !same && !zero, free: true}
			if !is[decided[i]] {
				t.Errorf("%s of a %s is %v, and was %v: want it %s", name, w.name, made.Field(f), before.Field(f),
					decided[i])
			}
		}
	}
}

// filledRun returns a run with a value in each field; the values depend on n.
func filledRun(n int) (r Run) {
	fillEach(reflect.ValueOf(&r).Elem(), &n)
	return r
}

func fillEach(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case ID:
		v.Set(reflect.ValueOf(ID{byte(*n), 1}))
		return
	case time.Time:
		v.Set(reflect.ValueOf(noon.Truncate(time.Second).Add(time.Duration(*n) * time.Second)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillEach(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillEach(v.Elem(), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillEach(key, n)
		fillEach(value, n)
		v.SetMapIndex(key, value)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillEach(v.Index(0), n)
	case reflect.String:
		v.SetString("text" + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n%3 + 1))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	}
}
