import * as HttpServerResponse from "@effect/platform/HttpServerResponse"

/** Pictures that a page may show; an SVG is none of them: it is a document that can run. */
const shown = new Set(["image/jpeg", "image/png", "image/webp", "image/gif"])
/** Types that files are served under. Any other file is served as bytes. */
const plain = /^(?:application\/pdf|(?:audio|video)\/[a-z0-9][a-z0-9.+-]{0,100})$/

/** A file from outside: shown as what it is, and never as something that could run. */
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
    contentType: shown.has(mimeType) || plain.test(mimeType) ? mimeType : "application/octet-stream",
    headers: {
      "cache-control": "private, max-age=3600",
      "content-disposition": `${shown.has(mimeType) ? "inline" : "attachment"}; filename*=UTF-8''${encodeURIComponent(name.toWellFormed())}`,
      "content-security-policy": "default-src 'none'; sandbox"
    }
  })
