package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/keyring.sql
var keyringSQL string

// Keyring is the keys that are not revoked, by id.
func (s *Store) Keyring(ctx context.Context) (keys []engine.APIKey, err error) {
	err = s.view(ctx, "read the keys", func(ctx context.Context) error {
		rows, err := s.views.Query(ctx, keyringSQL)
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, scanAPIKey)
		return err
	})
	return keys, err
}

//go:embed sql/list_api_keys.sql
var listAPIKeysSQL string

var listAPIKeysBackSQL = strings.Replace(listAPIKeysSQL, "order by key_id desc", "order by key_id asc", 1)

//go:embed sql/count_api_keys.sql
var countAPIKeysSQL string

// ListKeys is newest first.
func (s *Store) ListKeys(ctx context.Context, p engine.Page) (keys []engine.APIKey, info engine.PageInfo, err error) {
	statement := listAPIKeysSQL
	if p.Before != nil {
		statement = listAPIKeysBackSQL
	}
	err = s.view(ctx, "list keys", func(ctx context.Context) (err error) {
		keys, info, err = list(ctx, s, &p, statement, idPlace(&p), scanAPIKey, countAPIKeysSQL, args{})
		return err
	})
	return keys, info, err
}

//go:embed sql/note_key_use.sql
var noteKeyUseSQL string

// NoteKeyUse is one statement for all keys.
func (s *Store) NoteKeyUse(_ context.Context, uses []engine.KeyUse) error {
	if len(uses) == 0 {
		return nil
	}
	ids, at := make([]engine.ID, len(uses)), make([]int64, len(uses))
	for i, use := range uses {
		ids[i], at[i] = use.ID, micros(use.At)
	}
	_, err := write(s, "note the use of keys", func(t *tx) (none struct{}, err error) {
		return none, t.queue(noteKeyUseSQL, args{"key_ids": idArray(ids), "at": at})
	})
	return err
}

//go:embed sql/note_refusal.sql
var noteRefusalSQL string

// NoteRefusal leaves the first event of an id as it is.
func (s *Store) NoteRefusal(_ context.Context, e engine.AuditEvent) error {
	_, err := write(s, "note a refusal", func(t *tx) (none struct{}, err error) {
		return none, t.queue(noteRefusalSQL, auditArgs(&e))
	})
	return err
}

func scanAPIKey(row pgx.CollectableRow) (k engine.APIKey, err error) {
	err = row.Scan(apiKeyPlaces(&k)...)
	return k, err
}

// apiKeyPlaces is where the columns of the statements that read keys go, in their order.
func apiKeyPlaces(k *engine.APIKey) []any {
	return []any{
		idOf(&k.ID), &k.Name, numberOf(&k.Role), jsonOf(&k.Namespaces), jsonOf(&k.Queues), jsonOf(&k.Types), hashColumn{&k.Hash},
		timeOf(&k.CreatedAt), timeOf(&k.ExpiresAt), timeOf(&k.LastUsedAt), timeOf(&k.RevokedAt),
	}
}

// hashColumn is a SHA-256.
type hashColumn struct{ to *[32]byte }

func (c hashColumn) ScanBytes(hash []byte) error {
	if len(hash) != len(c.to) {
		return fmt.Errorf("a hash has %d bytes, want %d", len(hash), len(c.to))
	}
	copy(c.to[:], hash)
	return nil
}

// listText is a list of text as compact JSON, nothing for none.
func listText(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return jsonText(list)
}
