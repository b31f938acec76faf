/** What wrangler.toml binds. */
export interface Env {
  UPSTREAM_ORIGIN: string;
  ALLOWED_UPSTREAM_ORIGINS: string;
  UPSTREAM_PATH: string;
  UPSTREAM_DEADLINE_MS: string;
  CORS_ORIGINS: string;
  STALE_AFTER_DAYS: string;
  PURGE_TOKEN?: string;
  THUMBNAILS: R2Bucket;
  IMAGE_FULL_TIER_RATE_LIMITER: RateLimit;
  GOOGLE_DRIVE_RATE_LIMITER: RateLimit;
}
