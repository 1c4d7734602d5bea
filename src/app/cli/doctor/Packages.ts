/** The `spoke doctor` check of optional packages. */
import { packageMissing } from "../../../domain/OptionalPackage.ts"
import { missingForDocuments } from "../../OptionalPackages.ts"
import { type Finding, ok, warning } from "./Finding.ts"

/** The check of Redis covers its own package. */
export const checkPackages = (): ReadonlyArray<Finding> => {
  const missing = missingForDocuments()
  return missing.length === 0
    ? [ok("packages", "the packages for PDF files and text in images are installed")]
    : missing.map((use) => warning("packages", packageMissing(use).message))
}
