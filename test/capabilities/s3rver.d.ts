declare module "s3rver" {
  import type { RequestListener } from "node:http"

  interface Options {
    readonly directory: string
    readonly silent: boolean
    readonly allowMismatchedSignatures: boolean
    readonly configureBuckets: ReadonlyArray<{
      readonly name: string
      readonly configs: ReadonlyArray<string>
    }>
  }

  export default class S3rver {
    constructor(options: Options)
    configureBuckets(): Promise<unknown>
    callback(): RequestListener
  }
}
