package cron_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// handwritten is expressions of every kind, most about the hours in which clocks change.
var handwritten = []string{
	"30 2 * * *", "0 2 * * *", "30 1 * * *", "0 1 * * *", "0 3 * * *", "59 1 * * *", "0 0 * * *", "30 0 * * *",
	"45 23 * * *", "1 0 * * *",
	"0,30 1,2 * * *", "15,45 0-3 * * *", "0-59 1 * * *", "*/15 2 * * *", "*/20 1 * * *", "5/25 0 * * *", "30 * * * 0",
	"17 */2 * * 0",
	"30 */3 * * SUN", "0 */8 * * *", "0 */6 * * 6,0", "*/30 * * 3,4,10,11 0", "0 0-23 * * 0", "59 23 * * SAT",
	"0 12 * * *", "15 14 1 * *",
	"0 2 * * 6", "0 2 * * 7", "0 2 * * 0", "30 2 * 3,4 SUN", "30 1 * 9-11 SUN", "0 0 1 * *", "0 0 31 * *", "0 0 29 2 *",
	"0 0 30,31 * *",
	"0 0 13 * 5", "0 0 1,15 * MON", "30 2 8-14 3 SUN", "30 1 1-7 11 0", "0 0 */2 * 1", "0 0 1 * */2", "0 0 */10 * *",
	"0 4 1-31 * MON",
	"0 0 L * *", "30 2 L * *", "30 1 L 3,10 *", "0 0 15W * *", "0 0 1W * *", "0 0 31W * *", "0 0 30W 2-4 *",
	"0 9 1,15,L * *", "0 9 10W,20W * *",
	"0 9 L * FRI", "0 9 15W * SUN", "30 2 * * SUNL", "30 1 * * SUN#1", "30 2 * * SUN#2", "30 2 * 3,10 0L",
	"0 0 * * 5#5", "0 0 * * 7#2", "0 0 * * 1#1,3#3",
	"0 9 1 * MON#1", "0 9 * * FRIL,MON", "0 0 1 1 *", "59 23 31 12 *", "0 0 29 2 1", "0 0 ? * MON", "0 0 1 * ?",
	"0 0 * JAN-MAR,DEC sat,sun",
	"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@Daily",
	"0 30 2 * * *", "15 30 2 * * *", "59 59 1 * * *", "0 0 2 * * SUN", "0 0 2 * * 1", "0 0 2 * * 7", "0 0 2 * * 1-7/2",
	"0 0 2 * * 2/2", "0 30 1 * * MON-FRI",
	"*/20 30 1 * * 1", "* 30 2 * * 1", "0,30 */30 1 * 3,11 SUN", "*/15 0 * * 3,4,10,11 1", "10/25 59 */2 * * SUN",
	"0 0 12 13 * FRI", "0 0 0 13 * 6",
	"0 0 0 1-7 * SUN", "0 30 2 8-14 3 SUN", "0 30 1 25-31 10 SUN", "0 0 0 29 2 MON", "0 0 0 */2 * MON", "0 0 0 L * ?",
	"0 0 0 L * FRI", "0 0 0 15W * MON",
	"0 0 0 ? * FRIL", "0 0 0 ? * 6L", "0 0 0 ? * 2#1", "0 30 2 ? * 1#2", "0 30 1 ? * 1L", "0 0 0 1W * 2#1",
	"0 0 0 29 2 ? 2000/4", "0 0 12 1 1 ? 2027",
	"0 0 12 1 1 ? 2027-2029", "0 30 2 * * ? 2005", "0 30 1 * * SUN 2000-2010/5", "0 0 0 31 12 ? 1999,2037",
	"30 15 10 ? * MON-FRI 2020-2037", "0 0 3 ? 3,10 1L 2030/1",
	"30 2 * * *  ", "\t30\t2 *  * *", "05 08 * * *", "0 0 * * 5/1", "0 0 * * 7/3", "0 0 * * 0/6", "0 0 * * 4-7/3",
	"0 0 * * 7", "0 0 * * 6-7", "0 0 * * 0-7",
}

// dense is expressions with too many ticks to look at each.
var dense = []string{"* * * * *", "*/7 * * * *", "1-59/2 * * * *", "* * * * * *", "*/10 * * * * *", "30 * * * * SUN",
	"* 1-3 * * *", "*/5 * * * * MON 2000-2037"}

// corpus is all handwritten expressions and as many random ones again, always the same.
func corpus() []string {
	rnd := rand.New(rand.NewPCG(2000, 2037))
	all := append([]string(nil), handwritten...)
	for range 110 {
		all = append(all, randomExpr(rnd))
	}
	return append(all, dense...)
}

// randomExpr has few ticks a day, most in the small hours.
func randomExpr(rnd *rand.Rand) string {
	minute := []string{randomField(rnd, 0, 59), "0", "30", "15,45", "*/30", "59"}[rnd.IntN(6)]
	hour := []string{randomField(rnd, 0, 23), "2", "1", "0-3", "*/4", "0", "23"}[rnd.IntN(7)]
	fields := []string{minute, hour, randomField(rnd, 1, 28), randomField(rnd, 1, 12), randomField(rnd, 1, 7)}
	if len(randomField(rnd, 0, 59)) < 3 {
		fields[2], fields[3] = "*", "*"
	}
	if rnd.IntN(2) == 0 {
		fields = append([]string{fmt.Sprint(rnd.IntN(60))}, fields...)
		if rnd.IntN(3) == 0 {
			fields = append(fields, []string{"*", "2001-2036", "2000/3", "2007,2019,2022"}[rnd.IntN(4)])
		}
	}
	return strings.Join(fields, " ")
}

func randomField(rnd *rand.Rand, low, high int) string {
	pick := func() int { return low + rnd.IntN(high-low+1) }
	switch a, b := pick(), pick(); rnd.IntN(6) {
	case 0, 1:
		return "*"
	case 2:
		return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
	case 3:
		return fmt.Sprintf("*/%d", 1+rnd.IntN(high-low+1))
	case 4:
		return fmt.Sprintf("%d,%d,%d", a, b, pick())
	default:
		return fmt.Sprint(a)
	}
}
