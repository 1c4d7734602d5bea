import * as HttpServerResponse from "@effect/platform/HttpServerResponse"

/** A file of somebody else's making: shown as what it is, and as nothing that could run. */
export const fileResponse = ({
  bytes,
  mimeType,
  name
}: {
  readonly bytes: Uint8Array
  readonly mimeType: string
  readonly name: string
}) =>
  HttpServerResponse.uint8Array(bytes, {
    contentType: mimeType,
    headers: {
      "cache-control": "private, max-age=3600",
      "content-disposition": `${mimeType.startsWith("image/") ? "inline" : "attachment"}; filename*=UTF-8''${encodeURIComponent(name)}`,
      "content-security-policy": "default-src 'none'; sandbox"
    }
  })
