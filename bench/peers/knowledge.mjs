/** What the peers share: chunks by pgvector, and stored messages. Environment: `DATABASE_URL`. */
import pg from "pg"

export const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 10 })

/** The `count` chunks that are nearest to a vector. */
export const nearest = async (vector, count) => {
  const { rows } = await pool.query({
    name: "search",
    text: `select id, document_id, source_name, url, content, 1 - (embedding <=> $1) as score from chunks
      order by embedding <=> $1 limit $2`,
    values: [JSON.stringify(vector), count]
  })
  return rows
}

export const addMessage = (id, role, content) =>
  pool.query({
    name: "say",
    text: "insert into messages (conversation_id, role, content) values ($1, $2, $3)",
    values: [id, role, content]
  })

/** Starts a conversation with its first message. Returns its id. */
export const startConversation = async (message) => {
  const { rows } = await pool.query({
    name: "begin",
    text: "insert into conversations default values returning id"
  })
  await addMessage(rows[0].id, "user", message)
  return rows[0].id
}

export const instructions = (found) =>
  `Answer from the context.\n\n${found.map(({ content }, place) => `[${place + 1}] ${content}`).join("\n\n")}`

/** A reply with its citations. */
export const result = (reply, conversationId, found) => ({
  data: { reply, conversationId, citations: found.map(({ content, ...rest }) => rest) }
})
