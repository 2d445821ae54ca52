"""A worker of AGQ: python worker.py ID [redis://[ID:KEY@]HOST:PORT]. It needs redis-py."""

import json
import re
import socket
import subprocess
import sys
import threading

import redis

me, url = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "redis://127.0.0.1:6380"
agq = redis.Redis.from_url(url, decode_responses=True)
beats = redis.Redis.from_url(url, decode_responses=True)


def run(plan, given):
    outputs, results = {}, []
    for task in plan["tasks"]:
        args = [re.sub(r"\{\{\s*input\.([^{}\s]+)\s*\}\}", lambda m: str(given[m[1]]), a) for a in task.get("args", [])]
        done = subprocess.run([task["command"], *args], input=outputs.get(task.get("input_from_task"), ""),
                              capture_output=True, text=True, timeout=task.get("timeout_secs"))
        outputs[task["task_number"]] = done.stdout
        results.append({"task_number": task["task_number"], "command": task["command"], "exit_code": done.returncode,
                        "stdout": done.stdout, "stderr": done.stderr})
        if done.returncode:
            return "failed", results
    return "completed", results


def beat(over=threading.Event()):
    while not over.wait(30):
        beats.execute_command("WORKER.HEARTBEAT", me)


tools = {"tools": ["printf", "sort", "uniq"]}
print(agq.execute_command("WORKER.REGISTER", json.dumps(
    {"worker_id": me, "hostname": socket.gethostname(), "agw_version": "1.0.0", "capabilities": tools})), flush=True)
threading.Thread(target=beat, daemon=True).start()
while True:
    if popped := agq.brpop("queue:ready", 5):
        job = json.loads(popped[1])
        status, results = run(job["plan"], job["input"])
        agq.execute_command("JOB.UPDATE", job["job_id"], json.dumps(
            {"status": status, "worker_id": me, "task_results": results}))
