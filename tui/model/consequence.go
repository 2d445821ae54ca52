package model

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/tui/render"
)

// Sentences for people who are about to do an action, about what it does.
const (
	TerminateText  = "Ends now, without cleanup."
	PauseText      = "No worker gets paused runs, and their timers wait until they are resumed."
	PauseNowText   = "Running steps are interrupted, and run again then."
	PauseFirstText = "Running steps finish first; pause now interrupts them."
	OverrideText   = "The history keeps the old record and your reason."
	DivergedText   = "The code has diverged from the run's history. Resume is for code that was restored or marked " +
		"with Patched; if no build matches the history, the run is paused again."
	AcceptText = "Accept divergence lets the code skip what it owes: recorded calls are not made again, and calls that " +
		"are new to the history run, even if they repeat an effect under another name."
	DrainText           = "Held runs may finish. The worker gets no new ones, then it exits."
	OfflineText         = "A worker process that is still running registers again."
	TriggerText         = "Each starts a run now; the next ticks do not change."
	PauseScheduleText   = "They do not fire until they are resumed. Open runs continue."
	SkippedText         = "Ticks missed during the pause are skipped."
	DeleteScheduleText  = "They do not fire any more. Runs that they started are kept."
	DisabledText        = "No run starts there, none is claimed and no schedule fires."
	DisableText         = "Runs that workers hold may finish. Nothing is deleted."
	EnableText          = "Runs start again. Schedules catch up on missed ticks."
	DeleteNamespaceText = "A namespace that holds runs, schedules, hooks, workers or keys is not deleted."
	ForceText           = "Its open runs are terminated, and all its runs, schedules, hooks and workers are deleted. A key " +
		"for this namespace alone is revoked."
	BackfillText   = "Ticks that have fired do not fire again. The overlap policy does not hold it back."
	CreateHookText = "Its secret is shown once. It is stored readable in the database, because signatures are " +
		"checked with it."
	DeleteHookText = "Deliveries to its URL are refused from now on. Its runs are kept."
	OwnKeyText     = "It is the key that you are using: you will be locked out."
	LastKeyText    = "No key is left then: every call is allowed without one."
)

// CancelText says what a cancellation with a grace does.
func CancelText(grace time.Duration) string {
	if grace == 0 {
		return "Ends now, without cleanup. Results that workers still send are ignored."
	}
	return fmt.Sprintf("The code of the run gets %s to clean up.", render.Duration(grace))
}

// RetryText says what a retry does.
func RetryText(o RetryOptions) string {
	switch {
	case o.Restart:
		return "A new run starts from the beginning and keeps no steps."
	case o.KeepAll:
		return "A new run keeps all completed steps, compensations too."
	case o.FromStep != "":
		return fmt.Sprintf("A new run keeps the steps completed before %q; that step and later ones run again.",
			o.FromStep)
	}
	return "A new run keeps all completed steps; it is refused if the run has compensated."
}
