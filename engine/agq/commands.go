package agq

import "time"

// command is an entry of the table.
type command struct {
	run         func(c *conn, args []string) (more bool)
	least, most int  // arguments; most -1: any number
	stranger    bool // it is served before the connection has shown a key
	worker      bool // it is refused when another connection has taken the worker over
}

// commands are all commands, by their names in capitals.
var commands map[string]command

func init() { // COMMAND COUNT reads the table
	commands = map[string]command{
		"AUTH":    {run: runAuth, least: 1, most: 2, stranger: true},
		"HELLO":   {run: runHello, most: -1, stranger: true},
		"QUIT":    {run: runQuit, most: -1, stranger: true},
		"RESET":   {run: runReset, stranger: true},
		"PING":    {run: runPing, most: 1, worker: true},
		"ECHO":    {run: runEcho, least: 1, most: 1},
		"SELECT":  {run: runSelect, least: 1, most: 1},
		"CLIENT":  {run: runClient, least: 1, most: -1},
		"INFO":    {run: runInfo, most: -1},
		"COMMAND": {run: runCommand, most: -1},
		"CONFIG":  {run: runConfig, least: 1, most: -1},

		"WORKER.REGISTER":   {run: runRegister, least: 1, most: 1},
		"WORKER.HEARTBEAT":  {run: runHeartbeat, least: 1, most: 2, worker: true},
		"WORKER.UNREGISTER": {run: runUnregister, least: 1, most: 1, worker: true},
		"WORKER.VERIFY":     {run: runVerify, least: 1, most: 2},

		"BRPOP":      {run: pops(true, true), least: 2, most: 2, worker: true},
		"BLPOP":      {run: pops(true, true), least: 2, most: 2, worker: true},
		"RPOP":       {run: popsNow, least: 1, most: 1, worker: true},
		"LPOP":       {run: popsNow, least: 1, most: 1, worker: true},
		"BRPOPLPUSH": {run: runMove, least: 3, most: 3, worker: true},
		"BLMOVE":     {run: runMove, least: 5, most: 5, worker: true},
		"RPOPLPUSH":  {run: runMove, least: 2, most: 2, worker: true},
		"LMOVE":      {run: runMove, least: 4, most: 4, worker: true},
		"LREM":       {run: runLrem, least: 3, most: 3},
		"LLEN":       {run: runLength, least: 1, most: 1},
		"JOB.UPDATE": {run: runJobUpdate, least: 2, most: 2, worker: true},

		"SET":    {run: runSet, least: 2, most: -1, worker: true},
		"GET":    {run: runGet, least: 1, most: 1},
		"EXISTS": {run: runExists, least: 1, most: 1},
		"TTL":    {run: runTTL, least: 1, most: 1},
		"KEYS":   {run: runKeys, least: 1, most: 1},

		"PLAN.SUBMIT":   {run: runPlanSubmit, least: 1, most: 1},
		"PLAN.GET":      {run: runPlanGet, least: 1, most: 1},
		"PLAN.LIST":     {run: runPlanList, most: 0},
		"PLAN.DELETE":   {run: runPlanDelete, least: 1, most: 1},
		"ACTION.SUBMIT": {run: runActionSubmit, least: 1, most: 1},
		"ACTION.STATUS": {run: runActionStatus, least: 1, most: 1},
		"JOB.STATUS":    {run: runJobStatus, least: 1, most: 1},
		"JOB.LIST":      {run: runJobList, least: 1, most: 2},
		"JOB.RETRY":     {run: runJobRetry, least: 1, most: 1},
		"JOBS.LIST":     {run: runJobsList, most: 1},
		"JOBS.SEARCH":   {run: runJobsSearch, least: 1, most: 1},
		"QUEUE.STATS":   {run: runQueueStats, most: 1},
		"QUEUE.PEEK":    {run: runQueuePeek, most: 2},
		"WORKERS.LIST":  {run: runWorkersList, most: 0},
		"METRICS":       {run: runMetrics, most: 0},
	}
}

// pops returns the command of a blocking pop that answers the key and the value.
func pops(pair, whole bool) func(*conn, []string) bool {
	return func(c *conn, args []string) bool {
		wait, refusal := timeoutOf(args[1])
		if refusal != "" {
			c.fail(refusal)
			return true
		}
		return c.runPop(args[0], wait, &pop{pair: pair, whole: whole})
	}
}

func popsNow(c *conn, args []string) bool { return c.runPop(args[0], -1, &pop{whole: true}) }

// runMove carries out the pops that name a second list, as AGW sends them. They answer the job's id.
func runMove(c *conn, args []string) bool {
	if args[1] != "queue:processing" {
		c.fail(unknownKey)
		return true
	}
	if len(args)%2 == 0 { // RPOPLPUSH and LMOVE
		return c.runPop(args[0], -1, &pop{})
	}
	wait, refusal := timeoutOf(args[len(args)-1])
	if refusal != "" {
		c.fail(refusal)
		return true
	}
	return c.runPop(args[0], wait, &pop{})
}

// runPing carries out PING. With a worker's id it is a heartbeat; health checks send it with any text.
func runPing(c *conn, args []string) bool {
	if len(args) == 0 {
		c.say(func(r *reply) { r.simple("PONG") })
		return true
	}
	text := args[0]
	if isWorkerID(text) {
		if refusal := c.bind(text); refusal != "" {
			c.fail(refusal)
			return true
		}
		c.heard()
	}
	c.bulk(text)
	return true
}

// heard passes a heartbeat on for the worker of the connection.
func (c *conn) heard() {
	if w := c.worker(); w != nil && w.isOpen() {
		w.beat()
		return
	}
	if now := time.Now(); now.Sub(c.beaten) >= beatEvery {
		c.beaten = now
		_ = c.heartbeat(nil) // an unknown worker has none, and PING does not make it known
	}
}
