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

// Health checks that the server listening at an address of this machine serves; an empty address is
// the server's default. It needs no key. TLS settings come from the environment and kagzi.toml. The
// error is one line.
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

// reaching returns how to reach the server of this machine. It ignores the address of profiles and
// KAGZI_ADDRESS, which may be another machine's.
func reaching(listen string) (profile.Profile, error) {
	return profile.Resolve(profile.Profile{Address: cmp.Or(local(listen), profile.DefaultAddress)})
}

// local returns the address at which a local client reaches a listener.
func local(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.Unmap().IsUnspecified() {
		host = "localhost" // most likely in the certificate
	}
	return net.JoinHostPort(host, port)
}

// BackupClient fetches a backup from a running server for `kagzi db backup`, which is in another
// package.
type BackupClient struct{ env *env }

// NewBackupClient returns one. version is the program's version.
func NewBackupClient(version string) *BackupClient { return &BackupClient{newEnv(version)} }

// Flags adds the client flags to a command, except those it already has.
func (b *BackupClient) Flags(cmd *cobra.Command) {
	flags := &cobra.Command{}
	b.env.flags.Register(flags.Flags())
	cmd.Flags().AddFlagSet(flags.Flags())
}

// Fetch writes a backup of a server's database to w. The server is the one of the command's flags,
// or at address. The backup is complete only if the error is nil.
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

// copyBackup copies the stream and verifies the size and checksum that the server sends last.
func copyBackup(w io.Writer, stream interface {
	Recv() (*kagziv1.BackupChunk, error)
}) error {
	hash := sha256.New()
	var size int64
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the server ended the backup early: it has no checksum and is not complete")
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
				"the backup is damaged: got %d of %d bytes, or the checksum differs from the server's; try again", size,
				part.GetTotalBytes())
		}
		return nil
	}
}
