package sqlite

import (
	"context"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/keyring.sql
var keyringSQL string

// Keyring returns the keys that are not revoked, by id.
func (s *Store) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	return read(ctx, s, "Keyring", func(r session) (keys []engine.APIKey, err error) {
		err = r.query(&keyringSQL, func(r *row) error {
			key, err := readAPIKey(r)
			keys = append(keys, key)
			return err
		})
		return keys, err
	})
}

//go:embed sql/list_api_keys.sql
var listAPIKeysSQL string

var listAPIKeysBackSQL = strings.Replace(listAPIKeysSQL, "order by key_id desc", "order by key_id asc", 1)

//go:embed sql/count_api_keys.sql
var countAPIKeysSQL string

// ListKeys returns keys, newest first.
func (s *Store) ListKeys(ctx context.Context, p engine.Page) ([]engine.APIKey, engine.PageInfo, error) {
	return list(ctx, s, "ListKeys", p, listing[engine.APIKey]{
		forth: &listAPIKeysSQL, back: &listAPIKeysBackSQL, count: &countAPIKeysSQL, read: readAPIKey,
		place: spanArgs(p.Span()),
	})
}

//go:embed sql/note_key_use.sql
var noteKeyUseSQL string

// NoteKeyUse takes one statement for all keys.
func (s *Store) NoteKeyUse(ctx context.Context, uses []engine.KeyUse) error {
	if len(uses) == 0 {
		return nil
	}
	given := make([]string, len(uses))
	for i, use := range uses {
		given[i] = hex.EncodeToString(use.ID[:]) + strconv.FormatInt(use.At.UnixMicro(), 10)
	}
	_, err := write(ctx, s, "NoteKeyUse", 0, func(t *tx) (int64, error) {
		return t.exec(&noteKeyUseSQL, text("uses", encode(given)))
	})
	return err
}

//go:embed sql/note_refusal.sql
var noteRefusalSQL string

// NoteRefusal keeps the first event of an id.
func (s *Store) NoteRefusal(ctx context.Context, e engine.AuditEvent) error {
	_, err := write(ctx, s, "NoteRefusal", 0, func(t *tx) (int64, error) {
		return t.exec(&noteRefusalSQL, auditArgs(&e)...)
	})
	return err
}

// readAPIKey reads the columns of statements that select whole keys.
func readAPIKey(r *row) (engine.APIKey, error) {
	k := engine.APIKey{ID: r.id(), Name: r.text(), Role: engine.KeyRole(r.num())}
	var err error
	decode(r.text(), &k.Namespaces, &err)
	decode(r.text(), &k.Queues, &err)
	decode(r.text(), &k.Types, &err)
	decode(r.text(), &k.WorkerIDs, &err)
	copy(k.Hash[:], r.bytes())
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.RevokedAt = r.time(), r.time(), r.time(), r.time()
	return k, err
}
