package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/engine"
)

func TestTimeoutsOfTheDatabaseAreUnavailable(t *testing.T) {
	for _, code := range []string{codeCanceled, codeIdleInTx, codeTxTimeout, codeLockTimeout, "57P05"} {
		if err := translate("write", &pgconn.PgError{Code: code}); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("SQLSTATE %s is %v, want ErrUnavailable", code, err)
		}
	}
}

func TestWhatAUserMayNotDoIsNamed(t *testing.T) {
	err := translate("make the table of migrations",
		&pgconn.PgError{Code: codeForbidden, Message: "permission denied for schema public"})
	want :=
		"make the table of migrations: the database's user may not do that (permission denied for schema public); " +
			"have it own the database, or a schema that the database URL names with ?schema="
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
