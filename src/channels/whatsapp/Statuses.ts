/** Delivery states of our WhatsApp messages. */
import type { Delivery, DeliveryStatus } from "../../domain/channels/Channel.ts"
import { type Fields, fieldsOf, outboxIdOf, identifierOf } from "../Fields.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

/** A voice message that was played counts as read. */
const deliveries: ReadonlyMap<string, Delivery> = new Map([
  ["sent", "sent"],
  ["delivered", "delivered"],
  ["read", "read"],
  ["played", "read"],
  ["failed", "failed"]
])

const errorOf = (status: Fields): string | null => {
  const [first] = itemsOf(status["errors"])
  if (first === undefined) return null
  const { code, title, message, error_data: data } = fieldsOf(first)
  const detail =
    identifierOf(fieldsOf(data)["details"], 1_000) ??
    identifierOf(message, 1_000) ??
    identifierOf(title, 1_000)
  return [identifierOf(code, 40), detail].filter((part) => part !== undefined).join(" ") || "failed"
}

/** Undefined for a status that is not about delivery. */
export const statusOf = (accountId: string, status: Fields): DeliveryStatus | undefined => {
  const id = identifierOf(status["id"])
  const delivery = deliveries.get(identifierOf(status["status"]) ?? "")
  if (id === undefined || delivery === undefined) return undefined
  return {
    channel: "whatsapp",
    accountId,
    providerMessageId: id,
    outboxId: outboxIdOf(status["biz_opaque_callback_data"]),
    delivery,
    error: delivery === "failed" ? (errorOf(status) ?? "failed") : null
  }
}
