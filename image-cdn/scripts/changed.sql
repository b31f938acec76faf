-- Google Drive images that were replaced, came back or were removed in the last two days, one identifier a line.
-- Two days, so that one night that failed is made good by the next.
SELECT DISTINCT card.identifier
FROM cardpicker_card AS card
JOIN cardpicker_source AS source ON source.id = card.source_id
LEFT JOIN cardpicker_cardwork AS work ON work.card_id = card.id
WHERE source.kind = 'google_drive'
  AND (
    card.removed_at > now() - interval '2 days'
    OR (
      work.reason IN ('image-changed', 'returned')
      AND (work.due_at IS NOT NULL OR work.lease_owner IS NOT NULL OR work.settled_at > now() - interval '2 days')
    )
  )
ORDER BY card.identifier
