import * as HttpServerResponse from "@effect/platform/HttpServerResponse"

/** Image types that a page may display. Not SVG, which can contain scripts. */
const inlineTypes = new Set(["image/jpeg", "image/png", "image/webp", "image/gif"])
/** Other types that are served as such. All others are served as `application/octet-stream`. */
const attachmentTypes = /^(?:application\/pdf|(?:audio|video)\/[a-z0-9][a-z0-9.+-]{0,100})$/

/** The response for an untrusted file. Browsers never execute it. */
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
    contentType:
      inlineTypes.has(mimeType) || attachmentTypes.test(mimeType) ? mimeType : "application/octet-stream",
    headers: {
      "cache-control": "private, max-age=3600",
      "content-disposition": `${inlineTypes.has(mimeType) ? "inline" : "attachment"}; filename*=UTF-8''${encodeURIComponent(name.toWellFormed())}`,
      "content-security-policy": "default-src 'none'; sandbox"
    }
  })
