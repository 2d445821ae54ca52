// Package daemon is the server process: its settings, its start and graceful stop, and the commands
// `kagzi server`, `kagzi db` and `kagzi tls`. Start with daemon.go, where Run assembles a server
// from the other packages and stops it in reverse order. By subject:
//
//   - Settings: their definitions (settings.go, config.go), where they come from (resolve.go,
//     file.go), printing (print.go), reloading (reload.go), and checks before the start (listen.go,
//     exposure.go, certificates.go, datadir.go).
//   - Parts of a server: running them side by side (internal/parts), backups (backups.go), metrics
//     and health over HTTP (http.go, internal/web), server info (facts.go), logs and traces
//     (internal/output, internal/tracing), garbage collection (internal/gc), and what differs
//     between operating systems (internal/platform).
//   - A database served in-process, without a server (window.go).
//   - Commands: command.go, which also starts a server next to something else in the process,
//     database*.go, tls.go; the local checks of `kagzi doctor` (examine.go); exit codes (exit.go).
package daemon
