package kagzi

import (
	"slices"
	"strings"
)

// Patched reports whether the run takes the new way at a change of its code:
//
//	if kagzi.Patched(ctx, "check-address") {
//		err = kagzi.Do(ctx, "check-address", checkAddress)
//	}
//
// It is true for a run that reaches this place for the first time with the new code: nothing that is
// recorded lies ahead of it. It is false in a replay of a run that has passed the place without the
// patch. The answer is recorded, so the run stays on its way; each first call is one durable write.
// Patched never waits and never diverges.
//
// The id follows the rules of step names. Several calls with one id, such as in a loop, answer each
// for itself. When no run of the old way is left, remove the old way and the call, and name the id in
// WorkerOptions.RemovedPatches until no run with its answer is left.
func Patched(ctx Context, id string) bool {
	b := ctx.workflow()
	if err := checkName("patch", id); err != nil {
		b.e.failAndExit(NonRetryable(err))
	}
	return record(b, patchPrefix+id, func() bool {
		b.e.mu.Lock()
		defer b.e.mu.Unlock()
		return len(b.e.uncalled) == b.e.ownLeft
	})
}

// patchPrefix begins the names of recorded answers of Patched.
const patchPrefix = ownPrefix + "patched:"

// isPatch reports whether an own record answers a call of Patched, with an id that is not removed.
func isPatch(name string, removed []string) bool {
	rest, ok := strings.CutPrefix(name, patchPrefix)
	return ok && !slices.ContainsFunc(removed, func(id string) bool {
		after, ok := strings.CutPrefix(rest, id)
		return ok && (after == "" || after[0] == '/' || after[0] == ':')
	})
}
