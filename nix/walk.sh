# Checks a deployment over HTTP: it becomes ready, creates a tenant with an agent and a key, reads an upload with its
# workers, searches it and answers from it. `first` does all of this, `again` repeats the requests with the same key after
# a restart. Needs curl, node, SPOKE_URL and SPOKE_OPERATOR_TOKEN; stores the key in the folder $1.
set -euo pipefail
folder=$1 part=$2

json() { node -p "JSON.parse(require('fs').readFileSync(0, 'utf8')).$1"; }
call() { curl --silent --show-error --fail-with-body --max-time 60 -H "content-type: application/json" "$@"; }

for attempt in $(seq 120); do
  if curl --silent --fail --max-time 5 --output /dev/null "$SPOKE_URL/readyz"; then break; fi
  if [ "$attempt" = 120 ]; then echo "not ready" >&2; exit 1; fi
  sleep 1
done
echo "ready"

if [ "$part" = first ]; then
  login='"email": "owner@example.org", "password": "correct horse battery"'
  call "$SPOKE_URL/api/operator/tenants" -H "authorization: Bearer $SPOKE_OPERATOR_TOKEN" \
    -d "{\"name\": \"Museum\", \"owner\": {$login}}" >/dev/null
  jar="$folder/jar"
  owner() { call -b "$jar" -c "$jar" -H "x-spoke-csrf: 1" "$@"; }
  owner "$SPOKE_URL/api/auth/login" -d "{$login}" >/dev/null
  agent=$(owner "$SPOKE_URL/api/agents" -d '{"name": "Guide"}' | json data.agent.id)
  owner "$SPOKE_URL/api/agents/$agent/keys" -d '{"name": "Key", "permissions": ["*"]}' | json data.secret >"$folder/key"
  echo "The museum is closed on Mondays. Admission is free on the first Sunday of the month." >"$folder/hours.txt"
  job=$(curl --silent --show-error --fail-with-body --max-time 60 "$SPOKE_URL/v1/sources/upload" \
    -H "x-api-key: $(cat "$folder/key")" -F name=Hours -F "file=@$folder/hours.txt" | json data.ingestionJob.id)
  for attempt in $(seq 120); do
    status=$(call "$SPOKE_URL/v1/ingestion-jobs/$job" -H "x-api-key: $(cat "$folder/key")" | json data.status)
    case "$status" in SUCCEEDED) break ;; FAILED | CANCELLED) echo "the job has $status" >&2; exit 1 ;; esac
    if [ "$attempt" = 120 ]; then echo "the job is still $status" >&2; exit 1; fi
    sleep 1
  done
  echo "an upload was read"
fi

call "$SPOKE_URL/v1/retrieve" -H "x-api-key: $(cat "$folder/key")" -d '{"query": "When is admission free?"}' |
  grep --quiet "first Sunday"
echo "it is found"
call "$SPOKE_URL/v1/chat" -H "x-api-key: $(cat "$folder/key")" -d '{"message": "When is admission free?"}' |
  json data.reply | grep --quiet "Sunday"
echo "it is answered from"
