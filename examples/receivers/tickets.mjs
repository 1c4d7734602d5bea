/**
 * Opens a ticket when a conversation requests a human. `node examples/receivers/tickets.mjs`, with the address of a
 * Zendesk in `TICKETS_URL`, `TICKETS_USER` and `TICKETS_TOKEN`, and that of the dashboard in `SPOKE_APP_URL`; see
 * receive.mjs for the rest. For another ticket system, change the `fetch`. Subscribe to `handoff.requested` with a
 * webhook of Spoke.
 */
import { receive, TryLater } from "./receive.mjs"

const timeoutMillis = 8_000
const app = process.env.SPOKE_APP_URL ?? "http://localhost:3000"
const login = Buffer.from(`${process.env.TICKETS_USER}/token:${process.env.TICKETS_TOKEN}`).toString("base64")

await receive(async ({ data, id, type }) => {
  if (type !== "handoff.requested") return
  const answer = await fetch(new URL("/api/v2/tickets.json", process.env.TICKETS_URL), {
    method: "POST",
    headers: {
      authorization: `Basic ${login}`,
      "content-type": "application/json",
      // The ticket is created once, even if this process ends before it has stored the id.
      "idempotency-key": id
    },
    body: JSON.stringify({
      ticket: {
        subject: "A customer asks for a human",
        external_id: data.conversationId,
        comment: {
          body: [data.reason, `${app}/app/conversations/${data.conversationId}`].filter(Boolean).join("\n\n")
        }
      }
    }),
    signal: AbortSignal.timeout(timeoutMillis)
  })
  await answer.body?.cancel()
  if (!answer.ok)
    throw new TryLater(
      `The ticket system answered ${answer.status}`,
      Number(answer.headers.get("retry-after")) || undefined
    )
})
