/** Source type URL: a page, and with `maxDepth` the site around it. */
import type { UrlConfig } from "../domain/knowledge/Source.ts"
import { crawl } from "./Crawl.ts"
import { withoutFragment } from "./Fetch.ts"
import type { Reader } from "./Reader.ts"

export const reader: Reader<typeof UrlConfig.Type> = {
  read: ({ url, maxDepth = 0, ...patterns }, options) =>
    crawl({ url: withoutFragment(url), maxDepth, ...patterns }, options)
}
