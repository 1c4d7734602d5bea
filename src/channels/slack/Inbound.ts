/**
 * Slack's Events API, one event per delivery: direct messages, and messages that mention the app. A thread is a
 * conversation; direct messages outside threads are one conversation too.
 */
import type * as DateTime from "effect/DateTime"
import type { ChannelAccess, Normalized } from "../../capabilities/ChannelAdapters.ts"
import type { InboundMedia } from "../../domain/channels/Channel.ts"
import {
  type Fields,
  fieldsOf,
  mediaKindOf,
  optionalMember,
  timestampOf,
  textOf,
  identifierOf
} from "../Fields.ts"
import { arrivalOrIgnored, ignored } from "../Normalized.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

const channel = "slack"

/** `<@U1>`, `<#C1|name>`, `<!here>`, `<https://…|label>`. */
const reference = /<([@#!]?)([^<>|]{1,2048})(?:\|([^<>]{0,500}))?>/g

/** The text with its references written out, without mentions of the app itself. */
const readableText = (text: string, bot: string): string =>
  text
    .replace(reference, (_: string, mark: string, target: string, label: string | undefined) => {
      if (mark === "@" && target === bot) return ""
      if (mark === "") return label === undefined || label === target ? target : `${label} (${target})`
      return `${mark === "#" ? "#" : "@"}${label ?? target}`
    })
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .trim()

const mediaOf = (event: Fields): ReadonlyArray<InboundMedia> =>
  itemsOf(event["files"]).flatMap((item) => {
    const { id, mimetype, name } = fieldsOf(item)
    const [fileId, type] = [identifierOf(id, 100), identifierOf(mimetype, 200)]
    if (fileId === undefined) return []
    return [
      {
        kind: mediaKindOf(type),
        id: fileId,
        ...optionalMember("mimeType", type),
        ...optionalMember("fileName", identifierOf(name))
      }
    ]
  })

/** `{channel}`, or `{channel}:{ts of the thread's first message}`. */
const threadOf = (event: Fields): string | undefined => {
  const [channelId, thread, ts] = [
    identifierOf(event["channel"], 60),
    identifierOf(event["thread_ts"], 40),
    identifierOf(event["ts"], 40)
  ]
  if (channelId === undefined || ts === undefined) return undefined
  if (event["type"] === "app_mention") return `${channelId}:${thread ?? ts}`
  return thread === undefined ? channelId : `${channelId}:${thread}`
}

/** Whether a person wrote the message to the app. Changes, joins and messages of other apps are ignored. */
const isForApp = (event: Fields, bot: string) => {
  if (identifierOf(event["user"]) === undefined || event["user"] === bot || event["bot_id"] !== undefined)
    return false
  if (event["type"] === "app_mention") return true
  const isPlain = event["subtype"] === undefined || event["subtype"] === "file_share"
  return event["type"] === "message" && event["channel_type"] === "im" && isPlain
}

/** Whether the event is for this account: an app in several workspaces gets the events of all at one address. */
const isForInstallation = (body: Fields, { botUserId, teamId }: Fields) => {
  const [authorized] = itemsOf(body["authorizations"])
  return authorized === undefined ? body["team_id"] === teamId : fieldsOf(authorized)["user_id"] === botUserId
}

/** `access` belongs to the app: `profile` contains the ids of its user and its workspace. */
export const normalize = (given: unknown, now: DateTime.Utc, access: ChannelAccess): Normalized => {
  const { externalId: accountId, profile } = access
  const body = fieldsOf(given)
  const event = fieldsOf(body["event"])
  const bot = profile["botUserId"] ?? ""
  const eventId = identifierOf(body["event_id"], 100)
  const thread = threadOf(event)
  if (
    eventId === undefined ||
    thread === undefined ||
    !isForInstallation(body, profile) ||
    !isForApp(event, bot)
  )
    return ignored
  const media = mediaOf(event)
  const text = readableText(textOf(event["text"]), bot)
  if (text === "" && media.length === 0) return ignored
  return arrivalOrIgnored({
    event: {
      _tag: "Message",
      channel,
      accountId,
      // Includes the account, because the secret of one app must not affect another.
      messageId: `${accountId}:${eventId}`,
      from: [{ kind: "thread", value: thread }],
      kind: media.length > 0 ? "media" : "text",
      text,
      media,
      standby: false,
      timestamp: timestampOf(identifierOf(event["ts"])?.split(".", 1).join(""), 1_000, now)
    },
    raw: body
  })
}
