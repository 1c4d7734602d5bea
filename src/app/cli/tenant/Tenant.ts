/** `spoke tenant`: one tenant of an installation with several, exported, imported and moved. */
import { Command } from "@commander-js/extra-typings"
import type * as Arguments from "../Arguments.ts"
import { moveCommand } from "./Move.ts"
import { exportCommand, importCommand } from "./TenantArchive.ts"

export const tenantCommand = (run: Arguments.Run) =>
  new Command("tenant")
    .description("Export, import or move one tenant, with everything that belongs to it.")
    .exitOverride()
    .showHelpAfterError("See spoke tenant --help.")
    .addHelpText(
      "after",
      "\nExamples:\n  spoke tenant export ten_… acme --key-file transfer.key\n  spoke tenant import acme --key-file transfer.key\n" +
        "  spoke tenant move ten_… --to https://eu.example.com --to-token-file eu.token"
    )
    .addCommand(exportCommand(run))
    .addCommand(importCommand(run))
    .addCommand(moveCommand(run))
