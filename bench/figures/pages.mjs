/**
 * Whether the last page of a long list costs as much as the first: a conversation of 3,000,000 messages (1,000,000
 * embedded) and an agent of 100,000 conversations, over HTTP. Reads all pages of both lists and counts the rows.
 */
import * as http from "node:http"
import { median, rounded, startSpoke, watchMemory } from "../machine.mjs"
import { embeddedSpoke, keyHeader, serverSpoke, withEmbedded, withServer } from "../spoke.mjs"

/** Statements that fill the lists. Ids ascend, as those of the service do. */
const fillStatements = ({ agentId, tenantId }, messages, conversations) => [
  // No list reads it, and it would take most of the time.
  "drop index messages_words",
  `insert into end_users (id, tenant_id) values ('usr_bench', '${tenantId}')`,
  `insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count)
    select 'cnv_' || lpad(n::text, 26, '0'), '${tenantId}', '${agentId}', 'usr_bench', 'api',
      case when n = 1 then ${messages} else 0 end
    from generate_series(1, ${conversations}) n`,
  ...Array.from(
    { length: Math.ceil(messages / 100_000) },
    (_, part) => `insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content)
      select 'msg_' || lpad(n::text, 26, '0'), (select tenant_id from agents where id = '${agentId}'), 'cnv_' || lpad('1', 26, '0'), '${agentId}', n,
        case when n % 2 = 1 then 'user' else 'assistant' end, 'What was said as message number ' || n
      from generate_series(${part * 100_000 + 1}, ${Math.min(messages, (part + 1) * 100_000)}) n`
  )
]

const agent = new http.Agent({ keepAlive: true })

/** The body's bytes go to `onData`. */
const get = (url, headers, onData) =>
  new Promise((resolve, reject) => {
    const request = http.request(url, { agent, headers }, (response) => {
      response.on("data", onData)
      response.on("error", reject)
      response.on("end", () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`))
      )
    })
    request.on("error", reject)
    request.end()
  })

const page = async (url, headers) => {
  const chunks = []
  await get(url, headers, (chunk) => chunks.push(chunk))
  return JSON.parse(Buffer.concat(chunks).toString()).data
}

/** To the end of a list by its cursors: how many rows, all different, and the address of its last page. */
const readAllPages = async (url, headers, list) => {
  const seen = new Set()
  let rows = 0
  let place = url
  for (;;) {
    const found = await page(place, headers)
    rows += found[list].length
    for (const { id } of found[list]) seen.add(id)
    if (found.nextCursor === null) {
      if (seen.size !== rows) throw new Error(`${rows - seen.size} rows came twice.`)
      return { rows, last: place }
    }
    place = `${url}&cursor=${encodeURIComponent(found.nextCursor)}`
  }
}

/** The first and the last page alternately, so that other load affects both. */
const compare = async (first, last, headers, rounds) => {
  const times = { first: [], last: [] }
  for (let round = -5; round < rounds; round++) {
    for (const [name, url] of Object.entries({ first, last })) {
      const started = performance.now()
      await page(url, headers)
      if (round >= 0) times[name].push(performance.now() - started)
    }
  }
  const [firstMs, lastMs] = [median(times.first), median(times.last)]
  return { firstMs: rounded(firstMs), lastMs: rounded(lastMs), ratio: rounded(lastMs / firstMs) }
}

/** The whole conversation in one response: how long, how much, and what more memory the server needed for it. */
const readWhole = async (url, headers, pid) => {
  const memory = watchMemory(pid)
  let bytes = 0
  const started = performance.now()
  await get(url, headers, (chunk) => (bytes += chunk.length))
  return {
    seconds: rounded((performance.now() - started) / 1_000),
    mebibytes: Math.round(bytes / 1_048_576),
    memoryMiB: Math.round(memory.end() - memory.before)
  }
}

const measure = async (spoke, sizes, { progress, quick }) => {
  const headers = keyHeader(spoke)
  const id = `cnv_${"1".padStart(26, "0")}`
  const lists = {
    messages: `${spoke.url}/v1/conversations/${id}/messages?limit=1000`,
    conversations: `${spoke.url}/v1/conversations?limit=100`
  }
  const out = {}
  for (const [list, url] of Object.entries(lists)) {
    const { last, rows } = await readAllPages(url, headers, list)
    if (rows !== sizes[list]) throw new Error(`${rows} ${list} of ${sizes[list]} came.`)
    out[list] = { rows, ...(await compare(url, last, headers, quick ? 3 : 21)) }
    progress(`${rows} ${list}: the last page takes ${out[list].ratio} times the first`)
  }
  return { ...out, whole: await readWhole(`${spoke.url}/v1/conversations/${id}`, headers, spoke.pid) }
}

export const pages = async (world) => {
  const { databases, model, progress, quick } = world
  const { postgres, redis } = await databases()
  const stub = await model()
  const small = { messages: 3_000, conversations: 300 }
  const sizes = {
    server: quick ? small : { messages: 3_000_000, conversations: 100_000 },
    embedded: quick ? small : { messages: 1_000_000, conversations: 100_000 }
  }
  const write = async (run, service, sizes) => {
    for (const statement of fillStatements(service, sizes.messages, sizes.conversations)) await run(statement)
    await run("vacuum analyze")
  }
  const out = {}
  if (postgres) {
    progress("on PostgreSQL")
    const spoke = await serverSpoke(stub, { postgres, redis }, [0])
    await withServer(spoke.databaseUrl, (run) => write(run, spoke, sizes.server))
    out.server = await measure(spoke, sizes.server, world)
    await spoke.stop()
  }
  progress("embedded")
  const stopped = await embeddedSpoke(stub, [0])
  await stopped.stop()
  await withEmbedded(stopped.variables, (run) => write(run, stopped, sizes.embedded))
  const spoke = { ...stopped, ...(await startSpoke(stopped.variables)) }
  out.embedded = await measure(spoke, sizes.embedded, world)
  await spoke.stop()
  return out
}
