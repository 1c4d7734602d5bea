/** The optional packages for documents that are not installed. */
import { createRequire } from "node:module"
import { optionalPackages, type PackageUse } from "../domain/OptionalPackage.ts"
import { codeOf } from "../domain/ThrownErrors.ts"

const { resolve } = createRequire(import.meta.url)

/** True for an installed package, even when it does not export its manifest. */
const isInstalled = (name: string): boolean => {
  try {
    return resolve(`${name}/package.json`) !== ""
  } catch (error) {
    return codeOf(error) === "ERR_PACKAGE_PATH_NOT_EXPORTED"
  }
}

const uses: ReadonlyArray<PackageUse> = ["Reading PDF files", "Reading text in images"]

export const missingForDocuments = (): ReadonlyArray<PackageUse> =>
  uses.filter((use) => !optionalPackages[use].every(isInstalled))
