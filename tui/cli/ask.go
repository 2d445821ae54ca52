package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kagzi/kagzi/tui/render"
)

// askable refuses what has to be asked for where nobody can answer. hint says what else there is to do.
func (o *output) askable(hint string) error {
	if o.inTTY {
		return nil
	}
	return &usageError{err: errors.New("there is no terminal to ask on"), hint: []string{hint}}
}

// ask puts a question to the person; anything but yes is an error that ends the command.
func (o *output) ask(ctx context.Context, question string) error {
	_, _ = fmt.Fprint(o.err, render.Safe(question+" [y/N] ")) // a question that cannot be shown gets no answer
	answer, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	} // any other end of input means no
	if reply := strings.ToLower(strings.TrimSpace(answer)); reply != "y" && reply != "yes" {
		o.say("nothing done")
		return codeError(ExitError)
	}
	return nil
}
