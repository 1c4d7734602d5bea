/**
 * German sentences for the service's error codes, because the service's messages are English. For codes that are not
 * specific enough, the service's message is shown, too (useReason.ts).
 */
import type { ErrorCode } from "../../../domain/Errors.ts"

export const germanCodes: Readonly<Record<ErrorCode, string>> = {
  UNAUTHORIZED: "Die Anmeldung gilt nicht oder nicht mehr.",
  FORBIDDEN: "Das ist mit dieser Rolle oder von hier aus nicht erlaubt.",
  PLAN_RESTRICTED: "Der Tarif enthält das nicht.",
  VALIDATION_ERROR: "Etwas an der Eingabe stimmt nicht.",
  NOT_FOUND: "Das gibt es nicht oder nicht mehr.",
  LIMIT_EXCEEDED: "Das Kontingent an Quellen oder Synchronisierungen ist ausgeschöpft.",
  TURN_LIMIT_EXCEEDED: "Das Kontingent an Antworten ist ausgeschöpft, oder ein Budget ist ausgegeben.",
  CONVERSATION_NOT_FOUND: "Das Gespräch gibt es nicht.",
  CONVERSATION_NOT_ACTIVE: "In diesem Gespräch antwortet der Agent gerade nicht.",
  END_USER_NOT_FOUND: "Die Person gibt es nicht.",
  RUNTIME_DATA_UNAVAILABLE: "Zusätzliche Angaben können gerade nicht weitergegeben werden.",
  TURN_FAILED: "Der Agent konnte nicht antworten.",
  RUNTIME_TIMEOUT: "Das Modell hat nicht rechtzeitig geantwortet.",
  GONE: "Diese Adresse gibt es nicht mehr.",
  UNSUPPORTED_ATTACHMENT_TYPE: "Das Modell dieses Agenten kann Dateien dieser Art nicht lesen.",
  UNSUPPORTED_TYPE: "Dateien dieser Art werden nicht angenommen.",
  FILE_TOO_LARGE: "Eine Datei ist größer, als hier erlaubt ist.",
  INTERNAL_ERROR: "Ein unerwarteter Fehler ist aufgetreten.",
  PAGINATION_NOT_READY: "Die Liste wird gerade vorbereitet. Bitte gleich noch einmal versuchen.",
  ARTIFACT_DELETE_CONFLICT: "Die Quelle wird gerade gelesen. Bitte löschen, sobald das fertig ist.",
  ARTIFACT_DELETE_UNAVAILABLE: "Das Löschen kann gerade nicht begonnen werden.",
  INVALID_SIGNATURE: "Die Signatur ist ungültig.",
  METHOD_NOT_ALLOWED: "Das geht unter dieser Adresse nicht.",
  CONFLICT: "Das verträgt sich nicht mit dem, was schon da ist.",
  PAYLOAD_TOO_LARGE: "Das ist zu groß zum Senden.",
  RATE_LIMITED: "Zu viele Versuche. Bitte später noch einmal.",
  SERVICE_UNAVAILABLE: "Der Dienst ist gerade nicht bereit. Bitte gleich noch einmal versuchen.",
  NOT_CONFIGURED: "Dafür fehlt dem Server eine Einstellung."
}
