package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kardianos/service"
	"github.com/spf13/cobra"
)

// runOptions are the options of the command that service managers run.
type runOptions struct {
	name       string
	logDir     string
	urlFile    string
	credential string
}

func newRun(o Options) *cobra.Command {
	var r runOptions
	cmd := &cobra.Command{
		Use:    "run -- SERVER-FLAGS",
		Short:  "Run the server for a service manager; not for use by hand",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), args, o, os.Getenv, os.Setenv)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&r.name, "name", defaultName, "name of the service")
	fs.StringVar(&r.logDir, "log-dir", "", "directory of the log files, which are rotated")
	fs.StringVar(&r.urlFile, "database-url-file", "", "file with the database URL")
	fs.StringVar(&r.credential, "database-url-credential", "", "systemd credential with the database URL")
	return cmd
}

func (r runOptions) run(ctx context.Context, args []string, o Options, getenv func(string) string,
	setenv func(string, string) error) error {
	end, err := r.redirect()
	if err != nil {
		return err
	}
	defer end()
	var group sync.WaitGroup
	defer group.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group.Go(func() { Watchdog(ctx, o.Alive) })
	return underManager(ctx, r.name, func(ctx context.Context) error {
		err := r.databaseURL(getenv, setenv)
		if err == nil {
			err = o.Run(ctx, args)
		}
		if err != nil && r.logDir != "" { // people look into the log when a service does not run
			fmt.Fprintln(os.Stderr, "error:", plain(err.Error()))
		}
		end() // here, because on Windows the process exits as soon as a failure is reported
		return err
	})
}

// databaseURL passes the URL to the server in the environment, which only the process and root can
// read.
func (r runOptions) databaseURL(getenv func(string) string, setenv func(string, string) error) error {
	file := r.urlFile
	if r.credential != "" {
		base := getenv("CREDENTIALS_DIRECTORY")
		if base == "" {
			return refuse(exitUsage, "--database-url-credential %q: systemd passed no credentials to this process",
				r.credential)
		}
		file = filepath.Join(base, r.credential)
	}
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the database URL: %w", err)
	}
	url := strings.TrimSpace(string(fileText(text)))
	if url == "" || strings.ContainsAny(url, "\n\x00") {
		return refuse(exitUsage, "%q: must be one line with the database URL", file)
	}
	return setenv("KAGZI_DB", url)
}

// redirect sends the output to log files, for service managers that keep no log. The first call of
// end writes what is left.
func (r runOptions) redirect() (end func(), err error) {
	if r.logDir == "" {
		return func() {}, nil
	}
	log, err := openLog(r.logDir)
	if err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = writer, writer
	var group sync.WaitGroup
	group.Go(func() { drain(log, reader) })
	return sync.OnceFunc(func() {
		os.Stdout, os.Stderr = stdout, stderr
		_ = writer.Close()
		group.Wait()
		_, _ = reader.Close(), log.Close()
	}), nil
}

// drain keeps reading when the log cannot be written, for example on a full disk, because otherwise
// the server would block on its output.
func drain(log io.Writer, r io.Reader) {
	text := make([]byte, 32<<10)
	for {
		n, err := r.Read(text)
		_, _ = log.Write(text[:n])
		if err != nil {
			return
		}
	}
}

// program is a server as run by github.com/kardianos/service.
type program struct {
	ctx    context.Context
	cancel context.CancelFunc
	serve  func(context.Context) error
	failed func(error)   // called if serve fails without having been stopped; may be nil
	ended  chan struct{} // closed when serve has ended
	err    error         // of serve; set before ended is closed
}

func newProgram(ctx context.Context, serve func(context.Context) error) *program {
	p := &program{serve: serve, ended: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Start returns at once, as service managers require.
func (p *program) Start(service.Service) error {
	go func() {
		defer close(p.ended)
		p.err = p.serve(p.ctx)
		if p.ctx.Err() == nil && p.failed != nil {
			if p.err == nil {
				p.err = errors.New("the server ended by itself")
			}
			p.failed(p.err)
		}
	}()
	return nil
}

// Stop ends the server and returns its error, which sets the exit code.
func (p *program) Stop(service.Service) error {
	p.cancel()
	<-p.ended
	return p.err
}
