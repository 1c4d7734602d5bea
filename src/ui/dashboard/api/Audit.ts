/** The audit trail. */
import type { AuditEntry as Declared } from "../../../domain/accounts/Audit.ts"
import type { AuditPage } from "../../../http/hosted/accounts/AuditApi.ts"
import { pagesOf } from "./Client.ts"

export type AuditEntry = typeof Declared.Encoded

export const audit = pagesOf<typeof AuditPage.Encoded>(["audit"], "/api/audit", { limit: 50 })
