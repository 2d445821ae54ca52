package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// Health asks the server that listens at an address of this machine whether it serves; an empty
// address is the server's default. How to trust its certificate is what the environment and
// kagzi.toml say. It needs no key. The error is one line, fit for a terminal.
func Health(ctx context.Context, listen string) error {
	p, err := reaching(listen)
	if err != nil {
		return err
	}
	o := tui.DialOptions{Address: p.Address}
	if o.TLS, err = p.TLSConfig(); err != nil {
		return err
	}
	conn, err := tui.Dial(o)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := conn.HealthCheck(ctx, &kagziv1.HealthCheckRequest{})
	switch {
	case err != nil:
		lines, _ := explain(&callError{address: p.Address, namespace: p.Namespace, err: err})
		return errors.New(lines[0])
	case answer.GetStatus() != kagziv1.ServingStatus_SERVING_STATUS_SERVING:
		return errors.New(render.Safe(answer.GetMessage()))
	}
	return nil
}

// reaching is how a server of this machine is reached. Where clients go, by a profile or
// KAGZI_ADDRESS, may be another machine's.
func reaching(listen string) (profile.Profile, error) {
	return profile.Resolve(profile.Profile{Address: cmp.Or(local(listen), profile.DefaultAddress)})
}

// local is where a client on this machine finds who listens at an address.
func local(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.Unmap().IsUnspecified() {
		host = "localhost" // the name that a certificate is likely to have
	}
	return net.JoinHostPort(host, port)
}

// BackupClient fetches a backup from a running server, for the command `kagzi db backup`, which is in another package.
type BackupClient struct{ env *env }

// NewBackupClient makes one. version is the program's.
func NewBackupClient(version string) *BackupClient { return &BackupClient{newEnv(version)} }

// Flags adds the flags of a client to a command; those that it has already stay its own.
func (b *BackupClient) Flags(cmd *cobra.Command) {
	flags := &cobra.Command{}
	b.env.flags.Register(flags.Flags())
	cmd.Flags().AddFlagSet(flags.Flags())
}

// Fetch writes a backup of the database of the server that the command's flags name, or of the one
// at address, to w. What was written is whole only when it returns nil.
func (b *BackupClient) Fetch(cmd *cobra.Command, address string, w io.Writer) error {
	if address != "" {
		if err := cmd.Flags().Set("address", address); err != nil {
			return err
		}
	}
	return b.env.run(cmd, func(ctx context.Context, c *client) error { return fetchBackup(ctx, c, w) })
}

func fetchBackup(ctx context.Context, c *client, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Backup(ctx, &kagziv1.BackupRequest{})
	if err != nil {
		return err
	}
	return copyBackup(w, stream)
}

// copyBackup writes what comes, and holds it to the size and the checksum that the server sends last.
func copyBackup(w io.Writer, stream interface {
	Recv() (*kagziv1.BackupChunk, error)
}) error {
	hash := sha256.New()
	var size int64
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the server ended the backup without its checksum; it is not whole")
		}
		if err != nil {
			return err
		}
		hash.Write(part.GetData())
		n, err := w.Write(part.GetData())
		if err != nil {
			return err
		}
		size += int64(n)
		if len(part.GetSha256()) == 0 {
			continue
		}
		if size != part.GetTotalBytes() || !bytes.Equal(hash.Sum(nil), part.GetSha256()) {
			return fmt.Errorf(
				"the backup came damaged: %d of %d bytes, or with another checksum than the server's; try again", size,
				part.GetTotalBytes())
		}
		return nil
	}
}
