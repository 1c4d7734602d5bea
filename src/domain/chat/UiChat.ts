/**
 * Bodies of the chat routes: the fields of a turn, or the messages that the AI SDK's transport posts. Only the last
 * message is used, because the agent reads the stored history.
 */
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { bounded, Text } from "../Text.ts"
import { boundedRuntimeData, CompleteFields, oneIdentity, TurnFields } from "./ChatTurn.ts"

/** The id of a chat, chosen by the client. Keys of an agent with the same scope share its chats. */
export const ChatId = bounded(200).pipe(Schema.brand("ChatId"))
export type ChatId = typeof ChatId.Type

/** The client's chat that a turn belongs to. If `again`, the turn answers the chat's last message once more. */
export interface ClientChat {
  readonly id: ChatId
  readonly again: boolean
}

const { message } = TurnFields.fields

const UserMessage = Schema.Struct({
  role: Schema.Literal("user").annotations({ message: () => "Expected the last message to be the user's" }),
  parts: Schema.Array(
    Schema.Struct({
      type: Schema.Literal("text").annotations({
        message: () => "Expected a text; files are taken by POST /api/v1/chat/stream alone"
      }),
      text: Schema.String
    })
  )
})
const decodeMessage = ParseResult.decodeUnknownEither(UserMessage)
const decodeText = ParseResult.decodeUnknownEither(message)

const UiMessages = Schema.Array(Schema.Unknown).pipe(
  Schema.minItems(1),
  Schema.annotations({
    jsonSchema: {
      type: "array",
      description: "UI messages; the last one is the user's, and its texts are the turn's `message`.",
      minItems: 1,
      items: {
        type: "object",
        required: ["role", "parts"],
        additionalProperties: true,
        properties: {
          role: { type: "string", enum: ["system", "user", "assistant"] },
          parts: {
            type: "array",
            items: {
              type: "object",
              required: ["type"],
              properties: { type: { type: "string" }, text: { type: "string" } },
              additionalProperties: true
            }
          }
        }
      }
    }
  })
)

/** The text of the last UI message. */
const LastMessage = Schema.transformOrFail(UiMessages, Schema.typeSchema(message), {
  strict: true,
  decode: (messages, _, ast) => {
    const lastIndex = messages.length - 1
    const last = ParseResult.flatMap(decodeMessage(messages[lastIndex]), ({ parts }) =>
      decodeText(parts.map(({ text }) => text).join(""))
    )
    return ParseResult.mapError(
      last,
      (issue) =>
        new ParseResult.Transformation(
          ast,
          messages,
          "Transformation",
          new ParseResult.Pointer(lastIndex, messages, issue)
        )
    )
  },
  encode: (text) => ParseResult.succeed([{ role: "user", parts: [{ type: "text", text }] }])
})

const chatFields = {
  message: optional(message),
  id: optional(ChatId),
  messages: optional(LastMessage),
  trigger: optional(Schema.Literal("submit-message", "regenerate-message")),
  messageId: optional(Text)
}

const ChatBody = Schema.Struct({ ...TurnFields.fields, ...chatFields })

const fieldIssue = (field: string, problem: string) => ({ path: [field], message: problem })

const consistent = (body: typeof ChatBody.Type) => {
  const { conversationId, id, messageId, messages, trigger } = body
  if (body.message === undefined && messages === undefined) return fieldIssue("message", "is missing")
  if (body.message !== undefined && messages !== undefined)
    return fieldIssue("messages", "Send message or messages")
  if (id !== undefined && conversationId !== undefined) return fieldIssue("id", "Send id or conversationId")
  if (trigger === "regenerate-message") {
    return id === undefined
      ? fieldIssue("id", "Expected the id of the chat whose last message is answered again")
      : undefined
  }
  return messageId === undefined || messages === undefined
    ? undefined
    : fieldIssue("messageId", "A sent message cannot be changed. Send a new one, or start another chat")
}

/** Body of `POST /v1/chat/stream`. */
export const StreamTurnBody = ChatBody.pipe(
  Schema.filter(consistent),
  Schema.filter(oneIdentity),
  Schema.filter(boundedRuntimeData)
)
/** Body of `POST /v1/chat`. */
export const CompleteTurnBody = Schema.Struct({ ...CompleteFields, ...chatFields }).pipe(
  Schema.filter(consistent),
  Schema.filter(oneIdentity),
  Schema.filter(boundedRuntimeData)
)

/** The turn's request in a body, with its chat. */
export const turnOf = <A extends typeof ChatBody.Type>({
  id,
  message,
  messageId: _,
  messages,
  trigger,
  ...turn
}: A) => ({
  ...turn,
  message: message ?? messages ?? "",
  ...(id === undefined ? {} : { chat: { id, again: trigger === "regenerate-message" } })
})
