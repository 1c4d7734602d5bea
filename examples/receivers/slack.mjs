/**
 * Posts events that need attention to a Slack channel. `node examples/receivers/slack.mjs`, with the address of an
 * incoming webhook of Slack in `SLACK_WEBHOOK_URL` and that of the dashboard in `SPOKE_APP_URL`; see receive.mjs for
 * the rest. Subscribe to the events below with a webhook of Spoke.
 */
import { receive, TryLater } from "./receive.mjs"

const timeoutMillis = 8_000
const app = process.env.SPOKE_APP_URL ?? "http://localhost:3000"

/** Escapes Slack's control characters, so that a name cannot become a link or a mention. */
const escaped = (text) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
const link = (path, text) => `<${app}/app/${path}|${escaped(text)}>`

const dollars = (nanoUsd) => `$${(nanoUsd / 1e9).toFixed(2)}`

/** The message for each event. Other types are ignored. */
const texts = {
  "webhook.test": () => "Spoke reaches this channel.",
  "handoff.requested": ({ conversationId, reason }) =>
    `:raising_hand: ${link(`conversations/${conversationId}`, "A conversation")} asks for a human.` +
    (reason ? ` ${escaped(reason)}` : ""),
  "source.failed": ({ error, name, sourceId }) =>
    `:warning: ${link(`sources/${sourceId}`, name ?? "A source")} could not be read.` +
    (error ? ` ${escaped(error)}` : ""),
  "feedback.given": ({ conversationId, rating }) =>
    rating > 0
      ? undefined
      : `:thumbsdown: A customer rated ${link(`conversations/${conversationId}`, "a reply")} down.`,
  "budget.near": ({ limitNanoUsd, percent, period, spentNanoUsd }) =>
    `:moneybag: ${percent} % of a ${escaped(period)}'s budget are spent: ${dollars(spentNanoUsd)} of ${dollars(limitNanoUsd)}.`,
  "channel.failing": ({ agentId, channel }) =>
    `:rotating_light: Messages through ${escaped(channel)} fail. ${link(`agents/${agentId}/channels`, "Look at its account")}.`,
  "channel.recovered": ({ channel }) =>
    `:white_check_mark: Messages through ${escaped(channel)} go out again.`,
  "gap.found": ({ agentId, count, people }) =>
    `:mag: ${count} turns of ${people} people had no answer to the same question. ${link(`agents/${agentId}/improve`, "Improve the agent")}.`
}

await receive(async ({ data, type }) => {
  const text = texts[type]?.(data)
  if (text === undefined) return
  const answer = await fetch(process.env.SLACK_WEBHOOK_URL, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text }),
    signal: AbortSignal.timeout(timeoutMillis)
  })
  await answer.body?.cancel()
  if (!answer.ok)
    throw new TryLater(
      `Slack answered ${answer.status}`,
      Number(answer.headers.get("retry-after")) || undefined
    )
})
