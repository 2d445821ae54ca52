package auth

import (
	"crypto/sha256"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var timings = flag.Int("timing.samples", 0,
	"how often the comparison of a key is timed with each of two hashes; 0 leaves it to how it is written")

// Nobody may learn from how long it takes how much of a key was right. That nothing else compares
// hashes is seen in the code; the clock is asked by
//
//	go test ./engine/server/internal/auth -run Timing -timing.samples=1000000 -v
func TestTheHashOfAKeyIsComparedWithoutTellingByItsTiming(t *testing.T) {
	if *timings == 0 {
		t.Skip("without -timing.samples")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	key := &Key{APIKey: engine.APIKey{Hash: sha256.Sum256([]byte("secret"))}}
	early, late := key.Hash, key.Hash
	early[0] ^= 1
	late[len(late)-1] ^= 1
	// The control is a comparison that ends where the hashes begin to differ: what cannot find that
	// out proves nothing.
	leaks := func(hash *[sha256.Size]byte) bool {
		for i := range hash {
			if hash[i] != key.Hash[i] {
				return false
			}
		}
		return true
	}
	const significant = 4.5 // as usual for this test (dudect)
	if x := difference(rnd, *timings, leaks, &early, &late); math.Abs(x) < significant {
		t.Errorf("t = %.2f for a comparison that tells: the clock is too coarse or the samples are too few", x)
	} else {
		t.Logf("t = %.2f for a comparison that tells", x)
	}
	if x := difference(rnd, *timings, key.opensWith, &early, &late); math.Abs(x) >= significant {
		t.Errorf("t = %.2f: how long it takes tells where the hashes begin to differ", x)
	} else {
		t.Logf("t = %.2f for ours", x)
	}
}

// difference is Welch's t of how long compare takes with a and with b, in samples that alternate at
// random. It leaves out the slowest tenth of each, during which the machine did other work.
func difference(rnd *rand.Rand, samples int, compare func(*[sha256.Size]byte) bool, a, b *[sha256.Size]byte) float64 {
	const calls = 64 // in a sample, for the sake of the clock
	var took [2][]float64
	for range 2 * samples {
		which := rnd.IntN(2)
		hash := []*[sha256.Size]byte{a, b}[which]
		began := time.Now()
		for range calls {
			if compare(hash) {
				panic("the hashes differ")
			}
		}
		took[which] = append(took[which], float64(time.Since(began)))
	}
	var mean, spread [2]float64
	for i := range took {
		slices.Sort(took[i])
		took[i] = took[i][:len(took[i])*9/10]
		n := float64(len(took[i]))
		for _, x := range took[i] {
			mean[i] += x / n
		}
		for _, x := range took[i] {
			spread[i] += (x - mean[i]) * (x - mean[i]) / (n - 1) / n
		}
	}
	return (mean[0] - mean[1]) / math.Sqrt(spread[0]+spread[1])
}

func TestNothingButAComparisonInConstantTimeLooksAtHashesOfKeys(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../*.go") // of the server
	if err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob("../*/*.go") // and of its parts
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, parts...)
	compared := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if called := dotted(n.Fun); slices.ContainsFunc(n.Args, ofHash) {
					if called == "subtle.ConstantTimeCompare" {
						compared++
					} else if strings.Contains(called, "Equal") || strings.Contains(called, "Compare") {
						t.Errorf("%s: %s of the hash of a key", set.Position(n.Pos()), called)
					}
				}
			case *ast.BinaryExpr:
				if (n.Op == token.EQL || n.Op == token.NEQ) && (ofHash(n.X) || ofHash(n.Y)) {
					t.Errorf("%s: %s with the hash of a key", set.Position(n.Pos()), n.Op)
				}
			}
			return true
		})
	}
	if compared != 1 {
		t.Errorf("hashes are compared in constant time at %d places, want one", compared)
	}
}

// dotted is the name of a function with that of its package.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

// ofHash says whether an expression is, or is a part of, a field Hash; what a function makes of one
// is not.
func ofHash(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return false
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Hash"
		}
		return !found
	})
	return found
}
