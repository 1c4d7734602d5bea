/** The packages that the host installs for what it needs, as `spoke doctor` finds them. */
import { packageMissing } from "../../../domain/OptionalPackage.ts"
import { missingForDocuments } from "../../OptionalPackages.ts"
import { type Finding, ok, warning } from "./Finding.ts"

/** The package of Redis is told of by the check of Redis. */
export const checkPackages = (): ReadonlyArray<Finding> => {
  const missing = missingForDocuments()
  return missing.length === 0
    ? [ok("packages", "those for PDF files and for text in images are installed")]
    : missing.map((use) => warning("packages", packageMissing(use).message))
}
