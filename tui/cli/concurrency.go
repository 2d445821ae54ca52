package cli

import (
	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// keyFlags are the flags of the concurrency key of a start or a schedule.
type keyFlags struct {
	key   string
	limit int32
	scope string
}

func (f *keyFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.key, "concurrency-key", "",
		"runs of the type with this key run one at a time, or up to --concurrency-limit")
	fs.Int32Var(&f.limit, "concurrency-limit", 0, "how many runs with the key may run at once (default 1)")
	fs.Var(choice(&f.scope, "slot", "open"), "concurrency-scope",
		"when a run counts: slot while a worker holds it, open from its first claim to its end, waits included")
	// fails only if the flag does not exist
	_ = cmd.RegisterFlagCompletionFunc("concurrency-scope", words("slot", "open"))
}

// wire returns the scope that was given; unspecified if none was.
func (f *keyFlags) wire(changed func(string) bool) kagziv1.ConcurrencyScope {
	switch {
	case !changed("concurrency-scope"):
		return kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_UNSPECIFIED
	case f.scope == "open":
		return kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN
	}
	return kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_SLOT
}
