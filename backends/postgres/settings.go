package postgres

import (
	_ "embed"
	"slices"
)

// setting is one parameter of a session.
type setting struct{ name, value string }

var commonSettings = []setting{
	{"quote_all_identifiers", "off"},
	{"standard_conforming_strings", "on"},
	{"synchronous_commit", "on"},
	{"lock_timeout", "2s"},
	{"idle_in_transaction_session_timeout", "10s"},
	{"jit", "off"},
}

// readCommitted applies to every session: a statement that has waited for a lock must see what its
// last holder wrote.
var readCommitted = setting{"default_transaction_isolation", "read committed"}

// plainSettings apply to connections outside the pools, whose work may take long: a migration, a
// check.
var plainSettings = []setting{
	{"quote_all_identifiers", "off"},
	{"standard_conforming_strings", "on"},
	{"statement_timeout", "0"},
	{"lock_timeout", "0"},
	{"idle_in_transaction_session_timeout", "0"},
}

// sessionSettings apply to every session that no pooler shares. The listening session may be idle
// for a long time.
var sessionSettings = []setting{readCommitted, {"idle_session_timeout", "0"}}

// writeSettings fix the plan of a hot statement whatever the statistics say, because its tables are
// sometimes empty and sometimes huge. Every statement of a write finds its rows by index. The cost
// of operators is low, so that the choice of index does not depend on how deep the indexes of a
// small table happen to be.
var writeSettings = append([]setting{
	{"statement_timeout", "5s"},
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_bitmapscan", "off"},
	{"cpu_operator_cost", "0.000001"},
}, commonSettings...)

// viewSettings make the planner plan lists for their filters.
var viewSettings = append([]setting{
	{"statement_timeout", "30s"},
	{"plan_cache_mode", "force_custom_plan"},
	{"default_transaction_read_only", "on"},
}, commonSettings...)

//go:embed sql/set_session.sql
var setSessionSQL string

//go:embed sql/set_local.sql
var setLocalText string

var setLocalSQL = hot(setLocalText)

// localSettings are the writing pool's settings, for one transaction. The time of a statement that
// is sent as a whole includes the arrival of its arguments, and a pooler passes megabytes on
// slowly.
var localSettings = append(slices.Clone(writeSettings), setting{"statement_timeout", "10s"})

// localViewSettings are the reading pool's settings, for one transaction.
var localViewSettings = append(slices.Clone(viewSettings), setting{"transaction_read_only", "on"})

func settingArgs(settings []setting) args {
	names, values := make([]string, len(settings)), make([]string, len(settings))
	for i, s := range settings {
		names[i], values[i] = s.name, s.value
	}
	return args{"names": names, "values": values}
}
