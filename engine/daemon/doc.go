// Package daemon is a server process: its settings, its start, its stop in reverse order, and the
// commands `kagzi server`, `kagzi db` and `kagzi tls`. Begin with daemon.go, where Run puts a
// server together out of the other packages and takes it down again. By subject:
//
//   - Settings: what there are (settings.go, config.go), where they come from (resolve.go,
//     file.go), how they are printed (print.go) and read again (reload.go), and which a server does
//     not start with (listen.go, exposure.go, certificates.go, datadir.go).
//   - Parts of a server: how they run side by side (internal/parts), backups (backups.go), metrics
//     and health over HTTP (http.go, internal/web), what it tells people of itself (facts.go), logs
//     and traces (internal/output, internal/tracing), when memory is collected (internal/gc), and
//     what differs between operating systems (internal/platform).
//   - Another way to be served: a database without a server (window.go).
//   - Commands: command.go, which also starts a server beside something else in the process,
//     database*.go, tls.go; what `kagzi doctor` finds on this machine (examine.go); and exit codes
//     (exit.go).
package daemon
