// Package daemon is a server process: its settings, its start, its stop in reverse order, and the commands `kagzi server`, `kagzi db` and
// `kagzi tls`. Begin with daemon.go, where Run puts a server together out of the other rooms and takes it down again. By subject:
//
//   - Settings: what there are (settings.go, config.go), where they come from (resolve.go, file.go, credential.go), how they are printed
//     (print.go) and read again (reload.go, hangup_*.go), and which a server does not start with (listen.go, exposure.go, certificates.go,
//     datadir*.go).
//   - Parts of a server: how they run side by side (parts.go), backups (backups.go), metrics and health over HTTP (http.go, metrics*.go,
//     scrape.go), what it tells people of itself (facts.go), logs and traces (log.go, trace.go), a clock (clock_*.go), and when memory is
//     collected (garbage.go).
//   - Other ways to be served: a server beside something else in the process (start.go), and a database without a server (window.go).
//   - Commands: command.go, database*.go, tls*.go; what `kagzi doctor` finds on this machine (examine*.go); and exit codes (exit.go).
package daemon
