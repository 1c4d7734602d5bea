/** Every kind of input that the service takes from outside. */
import { documentKinds } from "./DocumentKinds.ts"
import type { Kind } from "./Kind.ts"
import { modelKinds } from "./ModelKinds.ts"
import { requestKinds } from "./RequestKinds.ts"
import { siteKinds } from "./SiteKinds.ts"

export const kinds: ReadonlyArray<Kind> = [...siteKinds, ...documentKinds, ...modelKinds, ...requestKinds]
