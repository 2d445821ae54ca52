package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui"
)

// nearFlags let a command work on a database itself, without a server and without a key.
type nearFlags struct{ db string }

// ownDatabase is what --db says for the database of this machine's settings.
const ownDatabase = "default"

func (f *nearFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.db, "db", "", "work on this database itself, without a server and without a key: sqlite:FILE, postgres://…, or default for that of the server's settings")
	_ = cmd.RegisterFlagCompletionFunc("db", words(ownDatabase, "sqlite:", "postgres://")) // fails only for a flag that is not there
}

// runNear is run on the database that --db names, and as run without it. With create a database that is not there yet is made.
func (e *env) runNear(cmd *cobra.Command, f *nearFlags, create bool, work func(context.Context, *client) error) error {
	if f.db == "" {
		return e.run(cmd, work)
	}
	for _, name := range []string{"address", "profile", "api-key", "api-key-file"} {
		if cmd.Flags().Changed(name) {
			return usagef("--db and --%s cannot be given together: with --db no server is asked", name)
		}
	}
	if err := e.resolve(cmd); err != nil {
		return err
	}
	url := f.db
	if url == ownDatabase {
		url = ""
	}
	if e.local.Open == nil {
		return errors.New("this program cannot open a database; ask a server with --address")
	}
	near, err := e.local.Open(cmd.Context(), url, create)
	if err != nil {
		return ifHeld(err)
	}
	api, closeConn, err := e.dial(tui.DialOptions{Address: "the database", Dialer: near.Dial, CallTimeout: defaultCallTimeout})
	if err != nil {
		return errors.Join(err, near.Close())
	}
	err = e.client(cmd, api, near.Database).work(cmd.Context(), work)
	return errors.Join(err, closeConn(), near.Close())
}

// heldError says that a server has the database to itself, and what to do then. Its exit code is that of the error.
type heldError struct{ error }

func (e *heldError) Unwrap() error { return e.error }

// ifHeld makes an error of opening a database that a server has to itself one that says what to do.
func ifHeld(err error) error {
	if own, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok && own.ExitCode() == ExitConflict && strings.Contains(err.Error(), "is in use by ") {
		return &heldError{err}
	}
	return err
}
